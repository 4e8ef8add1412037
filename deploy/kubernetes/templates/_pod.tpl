{{- define "ringfence.labels" -}}
{ app.kubernetes.io/name: ringfence, app.kubernetes.io/instance: {{ .Release.Name }} }
{{- end -}}

{{- /* What all pods have, with files of `secret` and of the Secret .settings, if that is not empty. The restricted Pod
       Security Standard holds. */ -}}
{{- define "ringfence.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  # The files of the Secrets have this group, and nobody else may read them.
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
volumes:
  - name: settings
    projected:
      defaultMode: 0440
      sources:
        {{- with .Values.secret }}
        - secret: { name: {{ . }}, optional: {{ ne $.settings "" }} }
        {{- end }}
        {{- with .settings }}
        - secret: { name: {{ . }} }
        {{- end }}
{{- end -}}

{{- define "ringfence.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources: {{ toJson .Values.resources }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: ["ALL"] }
volumeMounts:
  - { name: settings, mountPath: /etc/ringfence, readOnly: true }
{{- end -}}
