"""Durable memory for LLM agents on the database a team already runs.

Every public name can be imported from here. Names are loaded on first use: importing the package loads no driver,
no SQLAlchemy and no framework.
"""
