// Lineage of a study's best network: each step from the first ancestor, with the gain of its operations.
// A step to a better network has a positive gain, also if smaller values are better.
// The best is a result that meets the constraints of the study, of a whole training and with a finite value of each
// objective, if there is one. A whole training has no gain over one that paused at a rung, nor the other way round.
// Of a configuration of parameters, `builds` is the network that its model builds.
// The archive finds the path by generations, of parents that the study proposed before their children: this text, which
// follows every path, takes too long where thousands of networks descend from each other.
// $study    Name of the study.
MATCH (s:Study {name: $study})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation)-[:OF]->(best:Architecture)
WHERE NOT isNaN(e.value)
WITH best, e, CASE WHEN s.direction = 'minimise' THEN -e.value ELSE e.value END AS score,
     s.constrained IS NULL OR all(i IN range(0, size(s.constrained) - 1) WHERE
       CASE s.operators[i] WHEN '<=' THEN e['metric_' + s.constrained[i]] <= s.bounds[i]
                           WHEN '<' THEN e['metric_' + s.constrained[i]] < s.bounds[i]
                           WHEN '>=' THEN e['metric_' + s.constrained[i]] >= s.bounds[i]
                           ELSE e['metric_' + s.constrained[i]] > s.bounds[i] END) AS met,
     s.objectives IS NULL OR all(i IN range(1, size(s.objectives) - 1) WHERE
       e['metric_' + s.objectives[i]] - e['metric_' + s.objectives[i]] = 0.0) AS told
WITH best, e, score, met, told
ORDER BY CASE WHEN met THEN 0 ELSE 1 END, CASE WHEN e.partial IS NULL THEN 0 ELSE 1 END,
         CASE WHEN told THEN 0 ELSE 1 END, score DESC, e.id LIMIT 1
// best: the network that the lineage leads to.
MATCH path = (best)<-[:MORPHED_INTO*0..40]-(first:Architecture)
WHERE all(at IN nodes(path) WHERE EXISTS { (at)<-[:OF]-(:Proposal {study: $study}) })
WITH path ORDER BY length(path) DESC LIMIT 1
WITH reverse(nodes(path)) AS networks, reverse(relationships(path)) AS morphs
UNWIND range(0, size(networks) - 1) AS step
WITH step, networks[step] AS network, CASE WHEN step > 0 THEN networks[step - 1] END AS parent,
     CASE WHEN step > 0 THEN morphs[step - 1].operations ELSE [] END AS operations
// steps: the networks, each with its parent and the operations that made it.
MATCH (s:Study {name: $study})
MATCH (network)<-[:OF]-(p:Proposal {study: $study})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
OPTIONAL MATCH (parent)<-[:OF]-(before:Proposal {study: $study})-[:RESULTED_IN]->(was:Evaluation)
RETURN step, p.number AS proposal, p.agent AS agent, network.key AS architecture, operations, e.value AS value,
       CASE WHEN (e.partial IS NULL) <> (was.partial IS NULL) THEN null
            WHEN s.direction = 'minimise' THEN was.value - e.value ELSE e.value - was.value END AS gain,
       head([(network)-[:BUILDS]->(built:Architecture) | built.key]) AS builds
ORDER BY step, proposal
