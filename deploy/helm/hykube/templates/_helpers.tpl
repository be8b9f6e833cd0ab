{{- define "hykube.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* At most 52 characters, because a StatefulSet appends a hash to the name in a label of its pods. */}}
{{- define "hykube.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "hykube.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hykube.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hykube.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "hykube.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "hykube.selector" -}}
{{ include "hykube.identity" . }}
app.kubernetes.io/component: {{ default "server" .component }}
{{- end }}

{{- define "hykube.identity" -}}
app.kubernetes.io/name: {{ include "hykube.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hykube.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "hykube.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "hykube.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "hykube.claim" -}}
{{- default (printf "data-%s-0" (include "hykube.fullname" .)) .Values.persistence.existingClaim }}
{{- end }}

{{- define "hykube.hasConfig" -}}
{{- if or .Values.authentication.config .Values.providers.trustPolicy }}true{{ end }}
{{- end }}
