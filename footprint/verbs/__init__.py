"""The verbs as library calls: they read the inputs, and hand facts to the packages that know what to make of them."""
