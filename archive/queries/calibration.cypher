// Calibration of each agent's surrogate: predicted versus observed scores; 68 % within one std are ideal.
// A score is the value, or minus the value if the study minimises; larger is better. The mean is the median of the
// prediction, and the std half the width of its central 68 %, independent of transforms of scores by the surrogate.
// Results of trainings that paused at a rung are left out.
// $study = null     Name of the study; null stands for all studies.
MATCH (s:Study) WHERE $study IS NULL OR s.name = $study
MATCH (s)-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE p.mean IS NOT NULL AND p.std IS NOT NULL AND e.partial IS NULL AND NOT isNaN(e.value)
WITH s.name AS study, p.agent AS agent, p.std AS std,
     CASE WHEN s.direction = 'minimise' THEN -e.value ELSE e.value END - p.mean AS error
RETURN study, agent, count(error) AS predictions, avg(error) AS bias, sqrt(avg(error * error)) AS rmse,
       avg(std) AS mean_std, avg(CASE WHEN abs(error) <= std THEN 1.0 ELSE 0.0 END) AS within_1_std,
       avg(CASE WHEN abs(error) <= 2 * std THEN 1.0 ELSE 0.0 END) AS within_2_std
ORDER BY study, agent
