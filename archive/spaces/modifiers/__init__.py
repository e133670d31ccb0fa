"""The nine modifiers of NASBOT (Table 6): what they do, where they apply, all of their results, random ones."""
