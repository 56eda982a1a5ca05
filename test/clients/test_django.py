"""Django with pgvector-python: migrations, models, indexes, queries."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dataset
import django
import numpy as np
import pytest
from dataset import CASES, IVFFLAT_CASES, Case
from django.conf import settings
from django.core import serializers
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Avg
from django.db.models.functions import Cast
from pgvector import HalfVector, SparseVector
from pgvector.django import (
    CosineDistance,
    HalfVectorField,
    HammingDistance,
    JaccardDistance,
    L1Distance,
    L2Distance,
    MaxInnerProduct,
)
from plans import Plans

PACKAGES = ("Django", "psycopg", "pgvector")

DISTANCES = {
    "l2": L2Distance,
    "ip": MaxInnerProduct,
    "cosine": CosineDistance,
    "l1": L1Distance,
    "hamming": HammingDistance,
    "jaccard": JaccardDistance,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The app in a folder that migrations can be written to, migrated and filled."""
    home = tmp_path_factory.mktemp("django")
    shutil.copytree(Path(__file__).parent / "django_app", home / "django_app")
    sys.path.insert(0, str(home))
    settings.configure(
        INSTALLED_APPS=["django.contrib.postgres", "django_app"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": os.environ["PGDATABASE"],
                "USER": os.environ["PGUSER"],
                "HOST": os.environ["PGHOST"],
                "PORT": os.environ["PGPORT"],
                # Settings of a library that the session has not loaded yet.
                "OPTIONS": {
                    "options": f"-c hnsw.ef_search={dataset.EF_SEARCH} -c hnsw.iterative_scan=strict_order"
                },
            }
        },
    )
    django.setup()
    from django_app import models

    migrate()
    load(models.Item)
    later = [models.hnsw(case) for case in CASES if (case.type, case.metric) != ("vector", "l2")]
    models.Item._meta.indexes += later
    migrate()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE items")
    yield models
    connection.close()


def migrate() -> None:
    call_command("makemigrations", "django_app", verbosity=0)
    call_command("migrate", verbosity=0)


def load(item: Any) -> None:
    item.objects.bulk_create(
        item(id=id, category=dataset.categories[i], **{t: param(t, dataset.rows[t][i]) for t in dataset.rows})
        for i, id in enumerate(dataset.ids)
    )


def param(type: str, value: np.ndarray) -> Any:
    match type:
        case "vector":
            return value
        case "halfvec":
            return HalfVector(value)
        case "sparsevec":
            return SparseVector(value)
        case _:
            return dataset.bit_text(value)


def search(models: Any, case: Case, **filter: int) -> list[list[tuple[int, float]]]:
    return [
        list(
            models.Item.objects.filter(**filter)
            .annotate(distance=DISTANCES[case.metric](case.type, param(case.type, query)))
            .order_by("distance")
            .values_list("id", "distance")[: dataset.K]
        )
        for query in case.queries
    ]


def test_migrations(models: Any) -> None:
    """Nothing is left to migrate; the migrations name the types and the indexes."""
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    out = io.StringIO()
    call_command("sqlmigrate", "django_app", "0002", stdout=out)
    assert f'"vector_" vector({dataset.DIMS}) NULL' in out.getvalue()
    assert f'"sparsevec_" sparsevec({dataset.SPARSE_DIMS}) NULL' in out.getvalue()
    assert 'USING hnsw ("vector_" vector_l2_ops) WITH (m = 16, ef_construction = 64)' in out.getvalue()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(models: Any, plans: Plans, case: Case) -> None:
    found = search(models, case)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(models: Any, plans: Plans, case: Case) -> None:
    found = search(models, case, category=3)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)


def test_explain(models: Any) -> None:
    query = dataset.queries["vector"][0]
    plan = models.Item.objects.order_by(CosineDistance("vector", query))[:5].explain()
    assert "Index Scan using items_vector_cosine on items" in plan


def test_within(models: Any) -> None:
    """All rows within a distance, exactly."""
    case = dataset.find("vector", "l2")
    query = case.queries[0]
    truth = case.distances(query)
    limit = float(np.median(truth))
    near = models.Item.objects.alias(distance=L2Distance("vector", query)).filter(distance__lt=limit)
    assert set(near.values_list("id", flat=True)) == set(np.array(dataset.ids)[truth < limit].tolist())


def test_expression(models: Any, plans: Plans) -> None:
    """An index on halves of whole vectors."""
    case = dataset.find("vector", "l2")
    halves = Cast("vector", HalfVectorField(dimensions=dataset.DIMS))
    found = []
    for query in case.queries:
        near = models.Item.objects.order_by(L2Distance(halves, HalfVector(query)))[:50]
        exact = models.Item.objects.filter(id__in=[item.id for item in near])
        ranked = exact.annotate(d=L2Distance("vector", query)).order_by("d").values_list("id", "d")
        found.append(list(ranked[: dataset.K]))
    assert plans.ordered_scans("items_halves") == dataset.QUERIES
    case.check(found)


def test_values(models: Any) -> None:
    for item in models.Item.objects.all():
        at = item.id - 1
        np.testing.assert_array_equal(dense(item.vector), dataset.rows["vector"][at])
        np.testing.assert_array_equal(dense(item.halfvec).astype(np.float16), dataset.rows["halfvec"][at])
        np.testing.assert_array_equal(item.sparsevec.to_numpy(), dataset.rows["sparsevec"][at])
        assert item.bit == dataset.bit_text(dataset.rows["bit"][at])


def dense(value: Any) -> np.ndarray:
    """Later versions give a list, earlier ones an array or an object."""
    return value.to_numpy() if hasattr(value, "to_numpy") else np.array(value, dtype=np.float32)


def test_fixtures(models: Any) -> None:
    """What dumpdata writes, loaddata reads."""
    some = models.Item.objects.filter(id__lte=3)
    dumped = serializers.serialize("json", some)
    with transaction.atomic():
        some.delete()
        for row in serializers.deserialize("json", dumped):
            row.save()
    assert serializers.serialize("json", models.Item.objects.filter(id__lte=3)) == dumped


def test_average(models: Any) -> None:
    mean = models.Item.objects.aggregate(mean=Avg("vector"))["mean"]
    np.testing.assert_allclose(dense(mean), dataset.rows["vector"].mean(axis=0), rtol=1e-4, atol=1e-4)


def test_update_and_delete(models: Any) -> None:
    far = np.full(dataset.DIMS, 9, dtype=np.float32)
    nearest = models.Item.objects.order_by(L2Distance("vector", far))
    item = models.Item.objects.create(id=9999, category=0)
    assert nearest.exclude(vector=None).first() != item
    item.vector = far
    item.save()
    assert nearest.first() == item
    item.delete()
    assert nearest.first().id != 9999


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(models: Any, plans: Plans, case: Case) -> None:
    index, other = models.ivfflat(case), models.hnsw(case)
    with connection.schema_editor() as editor:
        editor.remove_index(models.Item, other)
        editor.add_index(models.Item, index)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET ivfflat.probes = {dataset.LISTS}")
        found = search(models, case)
        plans.assert_used(index.name, dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        with connection.schema_editor() as editor:
            editor.remove_index(models.Item, index)
            editor.add_index(models.Item, other)


def test_zero(models: Any) -> None:
    """Back to before the first migration: no table, no extension. Comes last."""
    call_command("migrate", "django_app", "zero", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('items'), to_regtype('vector')")
        assert cursor.fetchone() == (None, None)
