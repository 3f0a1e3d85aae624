"""Raw text becomes a corpus, clean and cut (staging), compare (comparing), keep (writing), tell (report).

Each step works on parts of the sources that depend on the files alone, so any number of processes gives the same bytes.
"""
