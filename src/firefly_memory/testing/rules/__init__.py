"""The checks, a file for each group of rules. The declaration of a facet names the modules with its rules."""
