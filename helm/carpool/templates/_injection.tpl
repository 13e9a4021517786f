{{/* What the webhook adds to a pod: the same templates that a chart includes by itself, as JSON. */}}
{{- define "carpool.injection" -}}
{{- $made := include "carpool.injectedParts" . | fromJson -}}
{{- $_ := set $made "config" (include "carpool.configFile" .) -}}
{{- $intercepting := dict "Values" .Values "Release" .Release "Chart" .Chart "Capabilities" .Capabilities "intercept" "yes" -}}
{{- $intercept := include "carpool.injectedParts" $intercepting | fromJson -}}
{{- $_ := set $intercept "caDir" (include "carpool.caDir" .) -}}
{{- $_ := set $intercept "authority" (include "carpool.ownAuthority" . | empty | ternary (include "carpool.authorityName" .) "") -}}
{{- $_ := set $made "intercept" $intercept -}}
{{- toPrettyJson $made -}}
{{- end -}}

{{- define "carpool.injectedParts" -}}
{{- $made := dict -}}
{{- range $key, $template := dict "initContainers" "carpool.initContainers" "containers" "carpool.containers" "volumes" "carpool.volumes" "env" "carpool.env" "volumeMounts" "carpool.volumeMounts" "initVolumeMounts" "carpool.initVolumeMounts" -}}
{{- $_ := set $made $key (include $template $ | fromYamlArray | default list) -}}
{{- end -}}
{{- toJson $made -}}
{{- end -}}

{{- define "carpool.webhookSecret" -}}
{{- .Values.webhook.certificate.secret | default (include "carpool.webhookName" .) -}}
{{- end -}}

{{/* The name by which the API server asks, and which the certificate has to carry. */}}
{{- define "carpool.webhookHost" -}}
{{ include "carpool.webhookName" . }}.{{ .Release.Namespace }}.svc
{{- end -}}
