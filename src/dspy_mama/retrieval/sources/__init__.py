"""Sources of documents: Wikipedia, Japanese Law Translation, web pages and PDF files, folders of the user's.

Each is fetched politely, turned into Markdown with front matter (title, address, licence, access date), and kept in a
folder of the user's. Nothing fetched ships with the project.
"""

from dspy_mama.retrieval.sources.fetch import FetchReport, fetch_corpus

__all__ = ["FetchReport", "fetch_corpus"]
