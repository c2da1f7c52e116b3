# models.py
"""The tables of the application."""

from sqlalchemy import Column, MetaData, Table, Text

metadata = MetaData()
users = Table("users", metadata, Column("token", Text, primary_key=True), Column("name", Text, nullable=False))
