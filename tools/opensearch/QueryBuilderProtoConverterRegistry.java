package org.opensearch.transport.grpc.spi;

/** Stands in for a class of the gRPC plugin, which is not used. */
public interface QueryBuilderProtoConverterRegistry {}
