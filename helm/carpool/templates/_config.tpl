{{/* The configuration as it is used: what the user wrote, and what the way of deployment adds to it. */}}

{{/* YAML of the whole config table. */}}
{{- define "carpool.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if ne .Values.mode "daemonset" -}}
{{- if .Values.sidecar.socket.enabled -}}
{{- $_ := set $config "listen" (append $config.listen (include "carpool.socketListener" (list . .Values.sidecar.socket) | fromYaml)) -}}
{{- end -}}
{{- if and (not .Values.sidecar.native) (eq (default "0s" $config.drain_delay) "0s") -}}
{{- $_ := set $config "drain_delay" .Values.sidecar.classicDrainDelay -}}
{{- end -}}
{{- if and (include "carpool.configIntercepts" .) (not (include "carpool.ownAuthority" .)) -}}
{{- $_ := set $config "intercept" (merge (dict "ca_dir" (include "carpool.caDir" .)) (default dict $config.intercept)) -}}
{{- end -}}
{{- else if and (include "carpool.configIntercepts" .) (not (include "carpool.ownAuthority" .)) -}}
{{- fail "carpool: mode: daemonset makes no authority: config.intercept.ca_dir has to name the mountPath of one in secrets" -}}
{{- else if .Values.daemonset.socket.enabled -}}
{{- $_ := set $config "listen" (append $config.listen (include "carpool.socketListener" (list . .Values.daemonset.socket) | fromYaml)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Whole seconds, rounded up, of a duration such as "1500ms", or of the one that a variable has as its default. */}}
{{- define "carpool.seconds" -}}
{{- $duration := regexFind "[0-9]+(ms|s|m|h)" (default "0s" . | toString) -}}
{{- $number := int64 (regexFind "^[0-9]+" $duration) -}}
{{- if hasSuffix "ms" $duration -}}
{{ div (add $number 999) 1000 }}
{{- else -}}
{{ mul $number (get (dict "s" 1 "m" 60 "h" 3600) (regexFind "[smh]$" (default "0s" $duration))) }}
{{- end -}}
{{- end -}}

{{- define "carpool.configFile" -}}
{{- include "carpool.toml.table" (dict "path" "" "table" (include "carpool.config" . | fromYaml)) | trim -}}
{{- end -}}

{{- define "carpool.checksum" -}}
{{- include "carpool.configFile" . | sha256sum -}}
{{- end -}}

{{- define "carpool.socketListener" -}}
address: {{ printf "unix:%s" (include "carpool.socket" (first .)) | quote }}
{{- range $key := list "mode" "group" }}
{{- with get (last $) $key }}
{{ $key }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "carpool.socket" -}}
{{- if ne .Values.mode "daemonset" -}}
{{ .Values.sidecar.socket.directory }}/{{ .Values.sidecar.socket.name }}
{{- else -}}
/run/carpool/{{ .Values.daemonset.socket.name }}
{{- end -}}
{{- end -}}

{{/* Address of the first listener with a port that is a proxy for any origin without TLS; on a node otherwise of the first with a port. Empty: there is none. */}}
{{- define "carpool.proxyAddress" -}}
{{- $first := "" -}}
{{- $proxy := "" -}}
{{- range .Values.config.listen -}}
{{- $address := default "127.0.0.1:3128" .address -}}
{{- if not (hasPrefix "unix:" $address) -}}
{{- $first = default $address $first -}}
{{- if not (or .origin .cert_file) -}}{{- $proxy = default $address $proxy -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- ternary (default $first $proxy) $proxy (eq .Values.mode "daemonset") -}}
{{- end -}}

{{- define "carpool.isLoopback" -}}
{{- if regexMatch "^(127\\.|\\[::1\\])" . -}}true{{- end -}}
{{- end -}}

{{- define "carpool.proxyPort" -}}
{{- with include "carpool.proxyAddress" . -}}
{{- include "carpool.port" . | required (printf "carpool: config.listen: %s has to end with a port, which the applications are given" .) -}}
{{- end -}}
{{- end -}}

{{/* The same port, of a container whose hostPort or Service leads to it. */}}
{{- define "carpool.nodePort" -}}
{{- $address := include "carpool.proxyAddress" . -}}
{{- if and (or .Values.daemonset.hostPort .Values.daemonset.service.enabled) (include "carpool.isLoopback" $address) -}}{{- fail (printf "carpool: mode: daemonset: config.listen: %s is on loopback, where no other pod reaches it" $address) -}}{{- end -}}
{{- include "carpool.proxyPort" . -}}
{{- end -}}

{{- define "carpool.metricsPort" -}}
{{- $address := dig "metrics" "address" "" .Values.config -}}
{{- $why := "carpool: config.metrics.address is where the kubelet and Prometheus ask: it needs a port, not on loopback" -}}
{{- if include "carpool.isLoopback" $address -}}{{- fail $why -}}{{- end -}}
{{- include "carpool.port" (required $why $address) | required $why -}}
{{- end -}}
