"""Analysis of variance of results: which parameters and decisions matter.

measures        distributions of the codes of one column each
forest, trees   regression trees, their leaves as boxes, and integrals over them (fANOVA)
ped_anova       which columns tell the best results from the others (PED-ANOVA)
activity        sets of results in which a conditional column exists
"""
