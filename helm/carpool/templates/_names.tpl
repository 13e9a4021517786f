{{/* Names and labels. Every template takes carpool's own context; an application's chart passes .Subcharts.carpool. */}}

{{- define "carpool.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains "carpool" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-carpool" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* {context, ending}: the name of a Service, which is one label of DNS. */}}
{{- define "carpool.serviceName" -}}
{{- $name := include "carpool.fullname" .context | replace "." "-" -}}
{{- printf "%s%s" ($name | trunc (sub 63 (len .ending) | int) | trimSuffix "-") .ending -}}
{{- end -}}

{{- define "carpool.webhookName" -}}
{{- include "carpool.serviceName" (dict "context" . "ending" "-webhook") -}}
{{- end -}}

{{- define "carpool.selector" -}}
app.kubernetes.io/name: carpool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "carpool.labels" -}}
helm.sh/chart: {{ printf "carpool-%s" .Chart.Version | replace "+" "_" }}
{{ include "carpool.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The labels of the pods in which carpool runs. */}}
{{- define "carpool.podSelector" -}}
{{- if eq .Values.mode "daemonset" -}}
{{ include "carpool.selector" . }}
{{- else if eq .Values.mode "inject" -}}
carpool.io/inject: "true"
{{- else -}}
{{ toYaml (required "carpool: sidecar.selectorLabels has to name the application's pods for a monitor, a network policy or a disruption budget" .Values.sidecar.selectorLabels) }}
{{- end -}}
{{- end -}}

{{/* The labels of the pods that a network policy and a disruption budget of this chart are for. */}}
{{- define "carpool.guarded" -}}
{{- if eq .Values.mode "inject" -}}
{{ include "carpool.selector" . }}
{{- else -}}
{{ include "carpool.podSelector" . }}
{{- end -}}
{{- end -}}

{{- define "carpool.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What rules and dashboard go by, inside Kubernetes and outside: that it is a carpool (job), and which one (instance). */}}
{{- define "carpool.relabelings" -}}
relabelings:
  - targetLabel: job
    replacement: carpool
  - sourceLabels: [__meta_kubernetes_namespace, __meta_kubernetes_pod_name]
    separator: /
    targetLabel: instance
{{- end -}}

{{/* The number behind the last colon of an address. */}}
{{- define "carpool.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}
