{{- define "ringfence.labels" -}}
{ app.kubernetes.io/name: ringfence, app.kubernetes.io/instance: {{ .Release.Name }} }
{{- end -}}
