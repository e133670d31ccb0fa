"""The daemon's side of the queue: claims, leases and notices, across outages of the store.

store_client       claims proposals, and hands notices to the delivery
delivery           reports and results, many in one transaction
lease_keeper       renewal of leases, in a separate thread
queue_pace         when to look at the queue
store_link         calls to the store, and its outages
"""
