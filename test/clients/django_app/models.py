from __future__ import annotations

import dataset
from dataset import Case
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Cast
from pgvector.django import (
    BitField,
    HalfVectorField,
    HnswIndex,
    IvfflatIndex,
    SparseVectorField,
    VectorField,
)


def hnsw(case: Case) -> HnswIndex:
    return HnswIndex(name=case.index, fields=[case.type], opclasses=[case.opclass], m=16, ef_construction=64)


def ivfflat(case: Case) -> IvfflatIndex:
    return IvfflatIndex(
        name=f"{case.index}_ivf", fields=[case.type], opclasses=[case.opclass], lists=dataset.LISTS
    )


class Item(models.Model):
    category = models.IntegerField()
    vector = VectorField(dimensions=dataset.DIMS, db_column="vector_", null=True)
    halfvec = HalfVectorField(dimensions=dataset.DIMS, db_column="halfvec_", null=True)
    sparsevec = SparseVectorField(dimensions=dataset.SPARSE_DIMS, db_column="sparsevec_", null=True)
    bit = BitField(length=dataset.BITS, db_column="bit_", null=True)

    class Meta:
        db_table = "items"
        indexes = [
            hnsw(dataset.find("vector", "l2")),
            HnswIndex(
                OpClass(Cast("vector", HalfVectorField(dimensions=dataset.DIMS)), name="halfvec_l2_ops"),
                name="items_halves",
            ),
        ]
