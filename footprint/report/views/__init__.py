"""What each verb's report says, in which order: totals and the cost at N first, then what is large, then notes."""
