"""Files of trainers.

    checkpoints, upload                       resumable state of unfinished trials
    weights_file, weights_store               trained weights: their format, and folders or fsspec URLs with them
    weights_gc, history_gc                    deletion of unneeded weights, expired logs and checkpoints
    locations, remote_files                   folders or fsspec URLs; files behind URLs, replaced as a whole
    atomic, file_names, timeouts              atomic writes, safe names, unresponsive remote storage

Imports nothing else of the trainer.
"""
