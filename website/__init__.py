"""The site of the documentation: ``python -m website`` builds it, ``mkdocs.yml`` configures it."""
