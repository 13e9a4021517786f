{{/* What the webhook adds to a pod: the same templates that a chart includes by itself, as JSON. */}}
{{- define "carpool.injection" -}}
{{- $made := dict "config" (include "carpool.configFile" .) -}}
{{- range $key, $template := dict "initContainers" "carpool.initContainers" "containers" "carpool.containers" "volumes" "carpool.volumes" "env" "carpool.env" "volumeMounts" "carpool.volumeMounts" -}}
{{- $_ := set $made $key (include $template $ | fromYamlArray | default list) -}}
{{- end -}}
{{- toPrettyJson $made -}}
{{- end -}}

{{- define "carpool.webhookSecret" -}}
{{- .Values.webhook.certificate.secret | default (printf "%s-webhook" (include "carpool.fullname" .)) -}}
{{- end -}}

{{/* The name by which the API server asks, and which the certificate has to carry. */}}
{{- define "carpool.webhookHost" -}}
{{ include "carpool.fullname" . }}-webhook.{{ .Release.Namespace }}.svc
{{- end -}}
