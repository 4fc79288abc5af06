{{/* Names and labels. */}}

{{- define "conversation-export.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "conversation-export.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "conversation-export.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Never changed, for selectors cannot be. */}}
{{- define "conversation-export.selectorLabels" -}}
app.kubernetes.io/name: {{ include "conversation-export.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "conversation-export.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "conversation-export.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: conversation-export
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "conversation-export.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "conversation-export.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "conversation-export.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ default .Chart.AppVersion $image.tag }}{{- end -}}
{{- end -}}

{{/* A Job stays, so that its log can be read. */}}
{{- define "conversation-export.hookAnnotations" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}

{{/* What Jobs of hooks need is a hook of lower weight, which goes once all have run. */}}
{{- define "conversation-export.hookNeedAnnotations" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: "-10"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Who a process is. Null leaves it to the cluster. */}}
{{- define "conversation-export.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
fsGroup: {{ int64 . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "conversation-export.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The key of a component in the values. */}}
{{- define "conversation-export.valuesKey" -}}
{{- get (dict "ingest" "ingest" "export-api" "exportApi" "jobs" "jobs" "ops" "ops" "migrate" "ops" "topics" "ops") . -}}
{{- end -}}

{{/* The topics of events by their keys in the values, as YAML: kafka.topics without the one of commands. */}}
{{- define "conversation-export.eventTopics" -}}
{{- toYaml (omit .Values.kafka.topics "smsTriggers") -}}
{{- end -}}

{{/* How many replicas of a component there are at most. */}}
{{- define "conversation-export.maxReplicas" -}}
{{- $of := get .root.Values (include "conversation-export.valuesKey" .component) -}}
{{- $scaler := default dict (default $of.keda $of.autoscaling) -}}
{{- if $scaler.enabled }}{{ $scaler.maxReplicas }}{{ else if kindIs "invalid" $of.replicas }}2{{ else }}{{ $of.replicas }}{{ end -}}
{{- end -}}

{{/* Whether jobs has a board: only with a password. */}}
{{- define "conversation-export.hasBoard" -}}
{{- if include "conversation-export.secretRef" (dict "root" . "id" "board-password") }}true{{ end -}}
{{- end -}}
