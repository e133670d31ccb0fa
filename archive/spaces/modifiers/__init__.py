"""The nine modifiers of NASBOT (Table 6): their application, their legal choices, all their
results, random ones.
"""
