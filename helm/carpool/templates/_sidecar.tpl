{{/*
What an application's chart includes, each with carpool's context (with carpool as a dependency: .Subcharts.carpool):

  carpool.initContainers   into spec.initContainers, before those that need the network through carpool
  carpool.containers       into spec.containers
  carpool.volumes          into spec.volumes (_container.tpl)
  carpool.annotations      into the pod's metadata.annotations
  carpool.env              into the application's container: env
  carpool.volumeMounts     into the application's container: volumeMounts
  carpool.initVolumeMounts into an init container of the application that requests intercepted origins through carpool

As sidecar.native says, one of the first two has the sidecar; a chart that includes both can be switched. Without native nothing
orders the start: the application asks again until carpool listens.
*/}}

{{- define "carpool.checkVersion" -}}
{{- if eq .Values.mode "daemonset" -}}
{{- fail "carpool: these templates are not for mode: daemonset" -}}
{{- end -}}
{{- if and .Values.sidecar.native (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "carpool: %s has no native sidecars (1.29 has): set sidecar.native to false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{- define "carpool.initContainers" -}}
{{- include "carpool.checkVersion" . -}}
{{- if include "carpool.intercepts" . -}}
- {{ include "carpool.authorityContainer" . | nindent 2 | trim }}
{{ end -}}
{{- if .Values.sidecar.native -}}
- {{ include "carpool.container" . | nindent 2 | trim }}
  # Native sidecar: the kubelet starts the other containers when its startup probe has passed, and ends it after them.
  restartPolicy: Always
{{- end -}}
{{- end -}}

{{- define "carpool.containers" -}}
{{- include "carpool.checkVersion" . -}}
{{- if not .Values.sidecar.native -}}
- {{ include "carpool.container" . | nindent 2 | trim }}
{{- end -}}
{{- end -}}

{{- define "carpool.annotations" -}}
{{- if eq .Values.onConfigChange "rollout" -}}
carpool.io/config: {{ include "carpool.checksum" . }}
{{- end -}}
{{- end -}}

{{- define "carpool.env" -}}
{{- $port := include "carpool.proxyPort" . -}}
{{- if $port }}
{{- if .Values.sidecar.env.http }}
- {name: HTTP_PROXY, value: "http://127.0.0.1:{{ $port }}"}
- {name: http_proxy, value: "http://127.0.0.1:{{ $port }}"}
{{- end }}
{{- if or .Values.sidecar.env.https (include "carpool.intercepts" .) }}
- {name: HTTPS_PROXY, value: "http://127.0.0.1:{{ $port }}"}
- {name: https_proxy, value: "http://127.0.0.1:{{ $port }}"}
{{- end }}
- {name: NO_PROXY, value: {{ join "," .Values.sidecar.env.noProxy | quote }}}
- {name: no_proxy, value: {{ join "," .Values.sidecar.env.noProxy | quote }}}
{{- end }}
{{- if include "carpool.intercepts" . }}
{{- include "carpool.interceptEnv" . }}
{{- end }}
{{- if .Values.sidecar.socket.enabled }}
- {name: CARPOOL_SOCKET, value: {{ include "carpool.socket" . | quote }}}
{{- end }}
{{- end -}}

{{- define "carpool.volumeMounts" -}}
{{- include "carpool.initVolumeMounts" . }}
{{- if .Values.sidecar.socket.enabled }}
- name: carpool-socket
  mountPath: {{ .Values.sidecar.socket.directory }}
{{- end -}}
{{- end -}}
