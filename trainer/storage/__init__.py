"""Files of trainers.

    checkpoints                 resumable state of unfinished trials
    weights_file                trained weights: their format
    weights_store               their files, in folders or behind fsspec URLs
    garbage_collection          deletion of unneeded weights, expired logs and checkpoints
    locations, remote_files     folders or fsspec URLs; files behind URLs, replaced as a whole
    file_names, timeouts        safe names and logs; unresponsive remote storage

Imports nothing else of the trainer.
"""
