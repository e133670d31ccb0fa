{{/* Pod of a search. Call: (dict "root" $ "study" "first" "options" (list "--agent=nasbot")) */}}
{{- define "archive.agentPod" -}}
metadata:
  labels:
    {{- include "archive.labels" .root | nindent 4 }}
    app.kubernetes.io/component: agent
spec:
  {{- include "archive.pod" .root | nindent 2 }}
  restartPolicy: OnFailure
  securityContext: {{- include "archive.podSecurity" .root | nindent 4 }}
  containers:
    - name: agent
      image: {{ include "archive.image" (dict "root" .root "image" .root.Values.images.agent) }}
      imagePullPolicy: {{ .root.Values.images.agent.pullPolicy }}
      args:
        - search
        - {{ printf "--study=%s" .study | quote }}
        - --trainers=0
        {{- range .options }}
        - {{ . | quote }}
        {{- end }}
      env:
        {{- include "archive.workEnv" .root | nindent 8 }}
        - {name: ARCHIVE_PATIENCE, value: {{ .root.Values.database.patience | int | quote }}}
      {{- with .root.Values.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      resources: {{- toYaml .root.Values.agentResources | nindent 8 }}
      securityContext: {{- include "archive.containerSecurity" .root | nindent 8 }}
      volumeMounts: {{- include "archive.workMounts" .root | nindent 8 }}
  volumes: {{- include "archive.workVolumes" (dict "root" .root "scratch" "2Gi") | nindent 4 }}
{{- end -}}
