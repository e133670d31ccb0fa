// Families of published networks over the years: the best result of each, with and without further data.
// The years of a family are those of the first and the last paper that its file at the source names; they are known
// for timm, and null elsewhere. Recipes may be younger than the papers.
// $task    Name of the task.
MATCH (t:Task {name: $task})<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value) AND e.family IS NOT NULL
WITH e, a, CASE WHEN t.direction = 'minimise' THEN -e.value ELSE e.value END AS score
ORDER BY score DESC, e.model
WITH e.family AS family, collect([score, e.value, e.model, e.pretraining, a.params]) AS runs, count(DISTINCT a.key) AS networks
WITH family, networks, size(runs) AS results, runs[0] AS best, [run IN runs WHERE run[3] IS NULL][0] AS plain
RETURN null AS first_year, null AS last_year, family, networks, results, plain[1] AS best, plain[2] AS model,
       plain[4] AS params, best[1] AS best_with_data, best[2] AS model_with_data
ORDER BY family
