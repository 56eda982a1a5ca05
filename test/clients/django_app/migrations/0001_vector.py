"""Written by hand, as pgvector's documentation says; the next are made from the models."""

from django.db import migrations
from pgvector.django import VectorExtension


class Migration(migrations.Migration):
    operations = [VectorExtension()]
