{{/* The pod, the same in a Deployment and in a Job. What carpool needs are the six includes. */}}
{{- define "sidecar.pod" -}}
{{- $carpool := .Subcharts.carpool -}}
metadata:
  labels:
    app.kubernetes.io/name: {{ .Chart.Name }}
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/component: application
  annotations:
    example/program: {{ .Files.Get "files/app.py" | sha256sum }}
    {{- include "carpool.annotations" $carpool | nindent 4 }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 40
  restartPolicy: {{ ternary "Never" "Always" (gt (int .Values.jobRequests) 0) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "carpool.initContainers" $carpool }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: app
      image: {{ .Values.image | quote }}
      command: [python3, /app/app.py]
      env:
        - {name: URL, value: {{ .Values.url | quote }}}
        - {name: RATE, value: {{ .Values.rate | quote }}}
        - {name: LINGER, value: {{ .Values.lingerSeconds | quote }}}
        - {name: REQUESTS, value: {{ .Values.jobRequests | quote }}}
        {{- include "carpool.env" $carpool | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: program
          mountPath: /app
          readOnly: true
        {{- with include "carpool.volumeMounts" $carpool }}
        {{- . | nindent 8 }}
        {{- end }}
    {{- with include "carpool.containers" $carpool }}
    {{- . | nindent 4 }}
    {{- end }}
  volumes:
    - name: program
      configMap:
        name: {{ .Release.Name }}-program
    {{- include "carpool.volumes" $carpool | nindent 4 }}
{{- end -}}
