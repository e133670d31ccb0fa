{{/* Name of the release's objects; at most 40 characters, so that most suffixes fit into 63. */}}
{{- define "archive.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "archive.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "archive.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "archive.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Reference of one of the two images. Call: (dict "root" $ "image" .Values.images.agent) */}}
{{- define "archive.image" -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "archive.uri" -}}
{{- .Values.database.uri | default (printf "bolt://%s-neo4j:7687" (include "archive.fullname" .)) -}}
{{- end -}}

{{/* Claim of the shared volume; empty without one. */}}
{{- define "archive.shared" -}}
{{- with .Values.storage.shared -}}
{{- if .existingClaim -}}{{ .existingClaim }}{{- else if .size -}}{{ include "archive.fullname" $ }}-shared{{- end -}}
{{- end -}}
{{- end -}}

{{/* Security of the pods of the images of this project, by the Pod Security Standard `restricted`. */}}
{{- define "archive.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "archive.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Way to the archive: the address in the environment, the password in a file. */}}
{{- define "archive.env" -}}
- {name: ARCHIVE_DB, value: {{ include "archive.uri" . | quote }}}
- {name: ARCHIVE_USER, value: {{ .Values.database.user | quote }}}
- {name: ARCHIVE_PASSWORD_FILE, value: /run/secrets/archive/password}
{{- with .Values.database.name }}
- {name: ARCHIVE_DATABASE, value: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* Environment of agents and trainers. */}}
{{- define "archive.workEnv" -}}
{{ include "archive.env" . }}
{{- if .Values.storage.weights }}
- {name: ARCHIVE_WEIGHTS, value: {{ .Values.storage.weights | quote }}}
{{- end }}
{{- if .Values.storage.checkpoints }}
- {name: ARCHIVE_CHECKPOINTS, value: {{ .Values.storage.checkpoints | quote }}}
{{- end }}
{{- if include "archive.shared" . }}
- {name: ARCHIVE_HOME, value: /shared}
{{- end }}
{{- if .Values.storage.data.existingClaim }}
- {name: ARCHIVE_DATA_DIR, value: /data}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "archive.workMounts" -}}
- {name: password, mountPath: /run/secrets/archive, readOnly: true}
- {name: home, mountPath: /var/lib/archive}
- {name: scratch, mountPath: /tmp}
{{- if include "archive.shared" . }}
- {name: shared, mountPath: /shared}
{{- end }}
{{- if .Values.storage.data.existingClaim }}
- {name: data, mountPath: /data, readOnly: true}
{{- end }}
{{- end -}}

{{/* Volumes of agents and trainers. Call: (dict "root" $ "scratch" "20Gi") */}}
{{- define "archive.workVolumes" -}}
{{ include "archive.passwordVolume" .root }}
- {name: home, emptyDir: {}}
- {name: scratch, emptyDir: {sizeLimit: {{ .scratch }}}}
{{- with include "archive.shared" .root }}
- {name: shared, persistentVolumeClaim: {claimName: {{ . }}}}
{{- end }}
{{- with .root.Values.storage.data.existingClaim }}
- {name: data, persistentVolumeClaim: {claimName: {{ . }}, readOnly: true}}
{{- end }}
{{- end -}}

{{- define "archive.passwordVolume" -}}
- name: password
  secret:
    secretName: {{ .Values.database.secret }}
    defaultMode: 0440
    items: [{key: password, path: password}]
{{- end -}}

{{/* What every pod has: its account, and no variables of services, which the image of Neo4j would read as settings. */}}
{{- define "archive.pod" -}}
serviceAccountName: {{ include "archive.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.images.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Selector of the pods of a component. Call: (dict "root" $ "component" "neo4j") */}}
{{- define "archive.component" -}}
matchLabels:
  {{- include "archive.selector" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "archive.namespace" -}}
namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
{{- end -}}
