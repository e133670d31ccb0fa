// Cost of each task: trainings and their seconds, by study and for imports; results that reuse others are left out.
// $task = null     Name of the task; null stands for all tasks.
MATCH (t:Task) WHERE $task IS NULL OR t.name = $task
MATCH (t)<-[:ON]-(e:Evaluation)
WHERE e.answered_from IS NULL
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
RETURN t.name AS task, t.protocol AS protocol, p.study AS study, count(e) AS evaluations, sum(e.seconds) AS seconds,
       sum(e.seconds) / 3600 AS hours, avg(e.seconds) AS mean_seconds, sum(e.epochs) AS epochs
ORDER BY task, protocol, study
