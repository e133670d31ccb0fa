// The networks that gain most from a better recipe: the worst and the best of their trainings.
// Trainings of one network are compared with one pretraining and one size of the test images. A gain over a recipe of
// few epochs says little; the rows have both recipes.
// $task    Name of the task.
// $least = 3    Fewest recipes of a network.
// $pretraining = null    Data before the task's own; null stands for none.
MATCH (t:Task {name: $task})<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value) AND e.model IS NOT NULL
  AND coalesce(e.pretraining, '') = coalesce($pretraining, '')
WITH a, split(t.protocol, '@')[1] AS size, coalesce(t.direction, 'maximise') AS direction, e, t
WITH a, size, direction, e, split(t.protocol, '@')[0] AS recipe,
     CASE WHEN direction = 'minimise' THEN -e.value ELSE e.value END AS score
ORDER BY score, recipe
WITH a, size, collect([e.value, recipe, e.model, e.family, score]) AS runs
WHERE size(runs) >= $least
WITH a, size, runs, runs[0] AS worst, runs[size(runs) - 1] AS best
RETURN split(best[2], '.')[0] AS model, best[3] AS family, size, size(runs) AS recipes, worst[0] AS worst, best[0] AS best,
       best[4] - worst[4] AS gain, worst[1] AS worst_recipe, best[1] AS best_recipe, a.params AS params, a.key AS architecture
ORDER BY gain DESC, model
