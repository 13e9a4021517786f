{{/*
Intercepted origins (docs/intercept.md): the authority is made in memory when the pod starts, and its key is mounted into
carpool's containers alone. With mode: inject both kinds of pods are rendered, and the webhook selects one.
*/}}

{{/* "yes" if the pod has intercepted origins. */}}
{{- define "carpool.intercepts" -}}
{{- if eq .Values.mode "inject" -}}
{{- if .intercept -}}yes{{- end -}}
{{- else if eq .Values.mode "sidecar" -}}
{{- include "carpool.configIntercepts" . -}}
{{- end -}}
{{- end -}}

{{- define "carpool.configIntercepts" -}}
{{- $found := "" -}}
{{- range .Values.config.origin -}}{{- if .intercept -}}{{- $found = "yes" -}}{{- end -}}{{- end -}}
{{- $found -}}
{{- end -}}

{{/* The folder of ca.pem and ca.key; one that the configuration names comes from `secrets`. */}}
{{- define "carpool.ownAuthority" -}}
{{- dig "intercept" "ca_dir" "" .Values.config -}}
{{- end -}}
{{- define "carpool.caDir" -}}
{{- include "carpool.ownAuthority" . | default "/run/carpool-ca" -}}
{{- end -}}
{{- define "carpool.trustDir" -}}/run/carpool-trust{{- end -}}
{{- define "carpool.authorityName" -}}{{ .Values.sidecar.name }}-ca{{- end -}}

{{/* An init container that makes the authority, and what applications trust. With mode: inject the webhook appends the hosts. */}}
{{- define "carpool.authorityContainer" -}}
name: {{ include "carpool.authorityName" . }}
image: {{ include "carpool.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if include "carpool.ownAuthority" . }}
args: [ca, bundle, {{ include "carpool.caDir" . | quote }}, --trust, {{ include "carpool.trustDir" . }}]
{{- else }}
args:
  - ca
  - init
  - {{ include "carpool.caDir" . }}
  - --trust
  - {{ include "carpool.trustDir" . }}
  - --days
  - {{ .Values.sidecar.intercept.days | quote }}
  - --host
  {{- if eq .Values.mode "sidecar" }}
  {{- range .Values.config.origin }}
  {{- if .intercept }}
  {{- if contains "${" .uri }}
  {{- fail (printf "carpool: config.origin: %s is intercepted, so the chart has to know its host" .uri) }}
  {{- end }}
  - {{ regexReplaceAll "^(?i:https)://|:[0-9]+/?$|/$" .uri "" | quote }}
  {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "carpool.securityContext" . | nindent 2 }}
volumeMounts:
  {{- if not (include "carpool.ownAuthority" .) }}
  - name: carpool-ca
    mountPath: {{ include "carpool.caDir" . }}
  {{- end }}
  - name: carpool-trust
    mountPath: {{ include "carpool.trustDir" . }}
  {{- with include "carpool.secretMounts" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "carpool.interceptVolumes" -}}
{{- if not (include "carpool.ownAuthority" .) }}
- name: carpool-ca
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
- name: carpool-trust
  emptyDir:
    medium: Memory
    sizeLimit: 8Mi
{{- end -}}

{{/* For the application's containers: certificates without a key. Init containers get it too, but no variables. */}}
{{- define "carpool.initVolumeMounts" -}}
{{- if include "carpool.intercepts" . -}}
- name: carpool-trust
  mountPath: {{ include "carpool.trustDir" . }}
  readOnly: true
{{- end -}}
{{- end -}}

{{/* As `carpool ca env` prints it, and the proxy for runtimes that do not read HTTPS_PROXY by themselves. */}}
{{- define "carpool.interceptEnv" -}}
{{- $trust := include "carpool.trustDir" . -}}
{{- range $name := list "SSL_CERT_FILE" "CURL_CA_BUNDLE" "REQUESTS_CA_BUNDLE" "AWS_CA_BUNDLE" "GIT_SSL_CAINFO" "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" }}
- {name: {{ $name }}, value: {{ $trust }}/bundle.pem}
{{- end }}
- {name: NODE_EXTRA_CA_CERTS, value: {{ $trust }}/ca.pem}
- {name: NODE_USE_ENV_PROXY, value: "1"}
- name: JAVA_TOOL_OPTIONS
  value: >-
    -Djavax.net.ssl.trustStore={{ $trust }}/bundle.p12 -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit
    {{- with include "carpool.proxyPort" . }} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={{ . }}{{ end }} -Dhttp.nonProxyHosts={{ include "carpool.javaNoProxy" . }}
{{- end -}}

{{/* `.svc` is `*.svc` there, and the separator is a bar. */}}
{{- define "carpool.javaNoProxy" -}}
{{- $names := list -}}
{{- range .Values.sidecar.env.noProxy -}}
{{- $names = append $names (hasPrefix "." . | ternary (print "*" .) (contains "::" . | ternary (printf "[%s]" .) .)) -}}
{{- end -}}
{{- join "|" $names -}}
{{- end -}}
