{{/* carpool's container, the same in a sidecar and in the DaemonSet. */}}

{{- define "carpool.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- if and (eq .Values.mode "daemonset") .Values.daemonset.socket.enabled }}
runAsUser: 0
{{- else }}
runAsNonRoot: true
runAsUser: {{ .Values.sidecar.runAsUser | int }}
runAsGroup: {{ .Values.sidecar.runAsUser | int }}
{{- end }}
{{- end -}}

{{- define "carpool.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
periodSeconds: {{ .probe.periodSeconds }}
failureThreshold: {{ .probe.failureThreshold }}
timeoutSeconds: 2
{{- end -}}

{{- define "carpool.probes" -}}
{{- $port := include "carpool.metricsPort" . | int -}}
startupProbe:
  {{- include "carpool.probe" (dict "path" "/readyz" "port" $port "probe" .Values.probes.startup) | nindent 2 }}
livenessProbe:
  {{- include "carpool.probe" (dict "path" "/livez" "port" $port "probe" .Values.probes.liveness) | nindent 2 }}
{{- if .Values.probes.readiness.enabled }}
readinessProbe:
  {{- include "carpool.probe" (dict "path" "/readyz" "port" $port "probe" .Values.probes.readiness) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "carpool.container" -}}
name: {{ .Values.sidecar.name }}
image: {{ include "carpool.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [--config, /etc/carpool/config.toml]
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if and (eq .Values.mode "daemonset") (include "carpool.proxyPort" .) }}
  - name: carpool-proxy
    containerPort: {{ include "carpool.nodePort" . | int }}
    {{- with .Values.daemonset.hostPort }}
    hostPort: {{ . | int }}
    {{- end }}
  {{- end }}
  - name: carpool-metrics
    containerPort: {{ include "carpool.metricsPort" . | int }}
{{ include "carpool.probes" . }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- include "carpool.securityContext" . | nindent 2 }}
volumeMounts:
  # The whole directory, because a file mounted alone (subPath) is never updated.
  - name: carpool-config
    mountPath: /etc/carpool
    readOnly: true
  {{- with include "carpool.secretMounts" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if and (include "carpool.intercepts" .) (not (include "carpool.ownAuthority" .)) }}
  - name: carpool-ca
    mountPath: {{ include "carpool.caDir" . }}
    readOnly: true
  {{- end }}
  {{- if eq .Values.mode "daemonset" }}
  {{- if .Values.daemonset.socket.enabled }}
  - name: carpool-socket
    mountPath: /run/carpool
  {{- end }}
  {{- else if .Values.sidecar.socket.enabled }}
  - name: carpool-socket
    mountPath: {{ .Values.sidecar.socket.directory }}
  {{- end }}
{{- end -}}

{{- define "carpool.secretMounts" -}}
{{- range .Values.secrets }}
- name: carpool-secret-{{ .name }}
  mountPath: {{ .mountPath }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "carpool.volumes" -}}
- name: carpool-config
  {{- if eq .Values.mode "inject" }}
  # The pod's annotation, which the webhook writes: the pod's namespace needs no ConfigMap.
  downwardAPI:
    items:
      - path: config.toml
        fieldRef:
          fieldPath: metadata.annotations['carpool.io/effective-config']
  {{- else }}
  configMap:
    name: {{ include "carpool.fullname" . }}
  {{- end }}
{{- range .Values.secrets }}
- name: carpool-secret-{{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: {{ if .mode }}{{ .mode | int }}{{ else }}0444{{ end }}
{{- end }}
{{- if include "carpool.intercepts" . }}
{{- include "carpool.interceptVolumes" . }}
{{- end }}
{{- if eq .Values.mode "daemonset" }}
{{- if .Values.daemonset.socket.enabled }}
- name: carpool-socket
  hostPath:
    path: {{ .Values.daemonset.socket.hostDirectory }}
    type: DirectoryOrCreate
{{- end }}
{{- else if .Values.sidecar.socket.enabled }}
- name: carpool-socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- end -}}
