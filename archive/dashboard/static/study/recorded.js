// @ts-check
/** Parts of the page of a study of recorded runs, in place of those of a search. */

export { bestRunPart, refreshBestRun } from "./best_run.js";
export { leaderboardPart, refreshLeaderboard } from "./leaderboard.js";
export { refreshRunTree, runTreePart } from "./run_tree.js";
export { refreshRunTable, runTableCard } from "./run_table.js";
