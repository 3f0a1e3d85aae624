"""Models in the layouts that others want: plain folders for `transformers`, and the compact form that is shipped."""
