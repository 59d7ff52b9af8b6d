"""Rules that find what a process could do without.

A rule is one module in one of the folders `*_rules`; `registry` finds it there. The other modules are analyses that
rules and verbs share.
"""
