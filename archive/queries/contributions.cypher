// Contributions between agents: results that proposals were based on, by the agent that had proposed them.
// $study = null     Name of the study; null stands for all studies.
MATCH (s:Study)-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN s.name AS study, s.direction AS direction, p.number AS number, p.agent AS agent, e.value AS value,
       CASE WHEN $study IS NULL OR s.name = $study THEN p.based_on END AS based_on
ORDER BY study, number
