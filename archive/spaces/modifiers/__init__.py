"""The nine modifiers of NASBOT (Table 6): application, legal choices, random choices."""
