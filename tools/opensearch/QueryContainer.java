package org.opensearch.protobufs;

/** Stands in for a class of the gRPC plugin, which is not used. */
public final class QueryContainer {
    public enum QueryContainerCase {}

    private QueryContainer() {}
}
