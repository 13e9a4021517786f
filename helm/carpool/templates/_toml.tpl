{{/*
Values as TOML. Helm's own toToml writes every number as a float (YAML reads them as such), which an integer key refuses.
A table's plain keys come first, then its tables, then its arrays of tables, each under its full path.
*/}}

{{- define "carpool.toml.value" -}}
{{- if kindIs "slice" . -}}
[{{ range $i, $one := . }}{{ if $i }}, {{ end }}{{ include "carpool.toml.value" $one }}{{ end }}]
{{- else if or (kindIs "float64" .) (kindIs "int64" .) (kindIs "int" .) -}}
{{- printf "%d" (int64 .) -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{- define "carpool.toml.isTables" -}}
{{- if and (kindIs "slice" .) . -}}{{- if kindIs "map" (first .) -}}yes{{- end -}}{{- end -}}
{{- end -}}

{{/* A key, quoted where it is no bare one: the name of a header field may have a point. */}}
{{- define "carpool.toml.key" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . -}}{{ . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* {path, table}: what stands under the header of the path. */}}
{{- define "carpool.toml.table" -}}
{{- $path := .path -}}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (include "carpool.toml.isTables" $value)) }}
{{ include "carpool.toml.key" $key }} = {{ include "carpool.toml.value" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- $name := include "carpool.toml.key" $key }}
{{- $full := ternary $name (printf "%s.%s" $path $name) (eq $path "") }}
{{- if kindIs "map" $value }}

[{{ $full }}]
{{- include "carpool.toml.table" (dict "path" $full "table" $value) }}
{{- else if include "carpool.toml.isTables" $value }}
{{- range $value }}

[[{{ $full }}]]
{{- include "carpool.toml.table" (dict "path" $full "table" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
