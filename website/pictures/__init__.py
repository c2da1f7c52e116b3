"""The pictures of the documentation, as SVG: ``python -m website.pictures`` writes them into ``docs/pictures``."""
