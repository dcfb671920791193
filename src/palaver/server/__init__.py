"""The web: rating pages, assignment in the database, the admin's view. FastAPI is imported on use."""
