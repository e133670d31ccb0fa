{{/* Pod of a trainer. Call: (dict "root" $ "name" "default" "trainer" {…}) */}}
{{- define "archive.trainerPod" -}}
metadata:
  labels:
    {{- include "archive.labels" .root | nindent 4 }}
    app.kubernetes.io/component: trainer
    nas-archive/trainers: {{ .name }}
spec:
  {{- include "archive.pod" .root | nindent 2 }}
  restartPolicy: {{ ternary "Never" "Always" .trainer.autoscaling }}
  terminationGracePeriodSeconds: {{ .trainer.graceSeconds }}
  {{- with .trainer.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .trainer.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext: {{- include "archive.podSecurity" .root | nindent 4 }}
  containers:
    - name: trainer
      image: {{ include "archive.image" (dict "root" .root "image" .root.Values.images.trainer) }}
      imagePullPolicy: {{ .root.Values.images.trainer.pullPolicy }}
      args:
        - trainer
        - --slots={{ .trainer.slots }}
        {{- with .trainer.study }}
        - {{ printf "--study=%s" . | quote }}
        {{- end }}
        {{- if .trainer.autoscaling }}
        - --idle={{ .trainer.idleSeconds }}s
        - --wait=10min
        {{- end }}
        - --grace={{ sub .trainer.graceSeconds 10 }}s
        - --log-format=json
        - --metrics-port=9464
        - --metrics-address=0.0.0.0
        {{- range .trainer.args }}
        - {{ . | quote }}
        {{- end }}
      env:
        {{- with (.trainer.resources.requests | default dict).cpu }}
        {{- $cores := ternary (div (trimSuffix "m" (toString .) | int) 1000) (floor (float64 .) | int) (hasSuffix "m" (toString .)) }}
        # A request of cores limits no process: without this, each would use all cores of its node. `env` overrides it.
        - {name: OMP_NUM_THREADS, value: {{ max 1 (div $cores (int $.trainer.slots)) | quote }}}
        {{- end }}
        {{- include "archive.workEnv" .root | nindent 8 }}
      {{- with .root.Values.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: metrics, containerPort: 9464}
      {{- if not .trainer.autoscaling }}
      # A trainer survives outages of the database, and ends by itself when it cannot work.
      livenessProbe:
        exec: {command: [archive, trainer, status, --healthcheck]}
        initialDelaySeconds: 120
        periodSeconds: 120
        timeoutSeconds: 60
        failureThreshold: 5
      {{- end }}
      {{- $resources := deepCopy .trainer.resources }}
      {{- if gt (int .trainer.gpus) 0 }}
      {{- $resources = merge $resources (dict "limits" (dict .trainer.gpuResource (int .trainer.gpus))) }}
      {{- end }}
      resources: {{- toYaml $resources | nindent 8 }}
      securityContext: {{- include "archive.containerSecurity" .root | nindent 8 }}
      volumeMounts:
        {{- include "archive.workMounts" .root | nindent 8 }}
        - {name: shm, mountPath: /dev/shm}
  volumes:
    {{- include "archive.workVolumes" (dict "root" .root "scratch" .trainer.scratch) | nindent 4 }}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: {{ .trainer.sharedMemory }}}}
  {{- with .trainer.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .trainer.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .trainer.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
