"""A receiver of OTLP over HTTP: it reads every request with the classes that OpenTelemetry's own definitions make."""
import threading

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from .origin import Origin


def values(attributes):
    """{key: value} of KeyValues."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


class Collector:
    """`respond(exchange, message)` responds to a request; None: with success."""

    def __init__(self, respond=None, tls=None):
        self.respond, self.lock = respond, threading.Lock()
        self.requests, self.spans, self.resources, self.metrics = [], [], [], []
        self.origin = Origin(self._serve, tls)
        self.url = self.origin.url

    def _serve(self, exchange):
        body = exchange.read_body()
        traces = exchange.request.target.endswith("/v1/traces")
        message = (ExportTraceServiceRequest if traces else ExportMetricsServiceRequest).FromString(body)
        with self.lock:
            self.requests.append(exchange.request)
        if self.respond is not None:
            result = self.respond(exchange, message)
            if result is not None:
                return result
        self.keep(message)
        return self.accept(exchange, traces)

    @staticmethod
    def accept(exchange, traces, **partial):
        response = (ExportTraceServiceResponse if traces else ExportMetricsServiceResponse)()
        if partial:
            for name, value in partial.items():
                setattr(response.partial_success, name, value)
        exchange.reply(body=response.SerializeToString(), headers=[("Content-Type", "application/x-protobuf")])
        return True

    def keep(self, message):
        with self.lock:
            for part in getattr(message, "resource_spans", ()):
                self.resources.append(values(part.resource.attributes))
                for scope in part.scope_spans:
                    assert scope.scope.name == "carpool"
                    self.spans += scope.spans
            for part in getattr(message, "resource_metrics", ()):
                self.resources.append(values(part.resource.attributes))
                self.metrics.append([m for scope in part.scope_metrics for m in scope.metrics])

    def stop(self):
        self.origin.stop()
