{{/*
The pod of a component. Takes root, component, args (the program's first), hook (of an installation or upgrade),
restartPolicy and deadlineSeconds.
*/}}
{{- define "conversation-export.pod" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $values := $root.Values -}}
{{- $of := get $values (include "conversation-export.valuesKey" $component) -}}
{{- $isService := has $component (list "ingest" "export-api" "jobs") -}}
{{- $fullname := include "conversation-export.fullname" $root -}}
{{- $labels := dict "root" $root "component" $component -}}
{{- $certificates := include "conversation-export.certificates" $labels | fromYamlArray -}}
metadata:
  labels:
    {{- include "conversation-export.labels" $labels | nindent 4 }}
    {{- with $of.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ $component }}
    {{- /* Pods read their variables once, at start: a changed hash restarts them. */}}
    checksum/config: {{ include "conversation-export.settings" $labels | sha256sum }}
    {{- if $values.secret.create }}
    checksum/secret: {{ include "conversation-export.secretData" (dict "root" $root) | sha256sum }}
    {{- end }}
    {{- with $of.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ .hook | ternary "default" (include "conversation-export.serviceAccountName" $root) }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "conversation-export.podSecurityContext" $root | nindent 4 }}
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- if $isService }}
  {{- /* Longer than the time to drain, which is longer than a request. */}}
  terminationGracePeriodSeconds: {{ add (default 0 $of.preStopSeconds) $of.shutdownSeconds 10 }}
  {{- end }}
  {{- with .deadlineSeconds }}
  activeDeadlineSeconds: {{ . }}
  {{- end }}
  {{- with $of.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $of.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $isService }}
  topologySpreadConstraints:
    {{- if $of.topologySpreadConstraints }}
    {{- toYaml $of.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "conversation-export.selectorLabels" $labels | nindent 10 }}
    {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ $component }}
      image: {{ include "conversation-export.image" $root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      # node itself is process 1, so that it receives signals.
      command: [node]
      args:
        {{- if dig "limits" "memory" "" $of.resources }}
        - --max-old-space-size-percentage={{ $of.heapPercent }}
        {{- end }}
        {{- toYaml .args | nindent 8 }}
      envFrom:
        - configMapRef:
            name: {{ $fullname }}-{{ $component }}
      {{- $env := list }}
      {{- range splitList " " (include "conversation-export.credentialsOf" $component) }}
      {{- $pair := splitList "=" . }}
      {{- $ref := include "conversation-export.secretRef" (dict "root" $root "id" (last $pair) "hook" $.hook) | fromYaml }}
      {{- if $ref }}
      {{- $env = append $env (dict "name" (first $pair) "valueFrom" (dict "secretKeyRef" $ref)) }}
      {{- end }}
      {{- end }}
      {{- if and $isService $values.traces.endpoint }}
      {{- $attributes := list (printf "k8s.namespace.name=%s" $root.Release.Namespace) "k8s.pod.name=$(POD_NAME)" }}
      {{- range $name, $value := $values.traces.attributes }}
      {{- $attributes = append $attributes (printf "%s=%s" $name (urlquery $value | replace "+" "%20")) }}
      {{- end }}
      {{- $env = append $env (dict "name" "POD_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name"))) }}
      {{- $env = append $env (dict "name" "OTEL_RESOURCE_ATTRIBUTES" "value" (join "," $attributes)) }}
      {{- end }}
      {{- $env = concat $env $of.extraEnv }}
      {{- with $env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $isService }}
      ports:
        {{- if eq $component "export-api" }}
        - name: http
          containerPort: 8080
        {{- end }}
        - name: metrics
          containerPort: 9090
        {{- if and (eq $component "jobs") (include "conversation-export.hasBoard" $root) }}
        - name: board
          containerPort: 9091
        {{- end }}
      startupProbe:
        httpGet: {path: /live, port: metrics}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      # Only whether the event loop runs: a restart would not bring back a server that is away.
      livenessProbe:
        httpGet: {path: /live, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
        # A process that hangs does not drain: the grace of the pod would only keep it longer.
        terminationGracePeriodSeconds: 10
      readinessProbe:
        httpGet: {path: /ready, port: metrics}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      {{- with $of.preStopSeconds }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ . }}
      {{- end }}
      {{- end }}
      resources:
        {{- toYaml $of.resources | nindent 8 }}
      securityContext:
        {{- include "conversation-export.containerSecurityContext" $root | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- range $certificates }}
        - name: {{ .name }}
          mountPath: /etc/conversation-export/{{ .name }}
          readOnly: true
        {{- end }}
        {{- with $of.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- range $certificates }}
    - {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $of.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The variables that are no secrets. Takes root, component and hook. */}}
{{- define "conversation-export.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "conversation-export.fullname" .root }}-{{ .component }}
  labels:
    {{- include "conversation-export.labels" . | nindent 4 }}
  {{- if .hook }}
  annotations:
    {{- include "conversation-export.hookNeedAnnotations" . | nindent 4 }}
  {{- end }}
data:
  {{- include "conversation-export.settings" . | nindent 2 }}
{{- end -}}

{{/* A component with what belongs to it. Takes root, component, and of a Job args and weight. */}}
{{- define "conversation-export.workload" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $values := $root.Values -}}
{{- $of := get $values (include "conversation-export.valuesKey" $component) -}}
{{- $labels := dict "root" $root "component" $component -}}
{{- $isHook := has $component (list "migrate" "topics") -}}
{{ include "conversation-export.configMap" (dict "root" $root "component" $component "hook" $isHook) }}
---
{{- if $isHook }}
apiVersion: batch/v1
kind: Job
{{- else if eq $component "ops" }}
apiVersion: batch/v1
kind: CronJob
{{- else }}
apiVersion: apps/v1
kind: Deployment
{{- end }}
metadata:
  name: {{ include "conversation-export.fullname" $root }}-{{ $component }}
  labels:
    {{- include "conversation-export.labels" $labels | nindent 4 }}
  {{- if $isHook }}
  annotations:
    {{- include "conversation-export.hookAnnotations" (dict "weight" .weight) | nindent 4 }}
  {{- end }}
spec:
{{- if $isHook }}
  backoffLimit: {{ $values.migrations.backoffLimit }}
  activeDeadlineSeconds: {{ $values.migrations.activeDeadlineSeconds }}
  ttlSecondsAfterFinished: {{ $values.migrations.ttlSecondsAfterFinished }}
  template:
    {{- /* A Job that fails by its deadline deletes its pod with the log. One that has ended before stays. */}}
    {{- $podDeadline := max 1 (div (mul 9 (int $values.migrations.activeDeadlineSeconds)) 10) }}
    {{- include "conversation-export.pod" (dict "root" $root "component" $component "args" .args "hook" true "restartPolicy" "Never" "deadlineSeconds" $podDeadline) | nindent 4 }}
{{- else if eq $component "ops" }}
  # Never runs on schedule: operators create Jobs from it.
  schedule: "0 0 1 1 *"
  suspend: true
  concurrencyPolicy: Allow
  jobTemplate:
    metadata:
      labels:
        {{- include "conversation-export.labels" $labels | nindent 8 }}
    spec:
      backoffLimit: 0
      ttlSecondsAfterFinished: {{ $values.migrations.ttlSecondsAfterFinished }}
      template:
        {{- include "conversation-export.pod" (dict "root" $root "component" $component "args" .args "hook" false "restartPolicy" "Never") | nindent 8 }}
{{- else }}
  {{- $scaler := default dict (default $of.keda $of.autoscaling) }}
  {{- if not $scaler.enabled }}
  replicas: {{ kindIs "invalid" $of.replicas | ternary 2 $of.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate:
      {{- if eq $component "ingest" }}
      # A surge pod would join the consumer group and rebalance it once more.
      maxSurge: 0
      maxUnavailable: 1
      {{- else }}
      maxSurge: 1
      maxUnavailable: 0
      {{- end }}
  selector:
    matchLabels:
      {{- include "conversation-export.selectorLabels" $labels | nindent 6 }}
  template:
    {{- include "conversation-export.pod" (dict "root" $root "component" $component "args" (list (printf "services/%s/src/main.ts" $component)) "hook" false) | nindent 4 }}
{{- end }}
{{- end -}}
