{{- define "specmux.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "specmux.fullname" -}}
{{- $name := include "specmux.name" . -}}
{{- $made := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $made .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "specmux.selectorLabels" -}}
app.kubernetes.io/name: {{ include "specmux.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "specmux.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63)
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
-}}
{{- merge (include "specmux.selectorLabels" . | fromYaml) $own .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "specmux.serviceAccountName" -}}
{{- default (ternary (include "specmux.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "specmux.image" -}}
{{- with .Values.image -}}
{{- $tag := default $.Chart.AppVersion .tag -}}
{{- ternary (printf "%s@%s" .repository .digest) (printf "%s:%s" .repository $tag) (ne .digest "") -}}
{{- end -}}
{{- end -}}

{{- define "specmux.tlsSecretName" -}}
{{- if eq .Values.tls.type "existingSecret" -}}
{{- .Values.tls.existingSecret.name -}}
{{- else -}}
{{- include "specmux.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{/* The names a client may know us by, as a list. */}}
{{- define "specmux.dnsNames" -}}
{{- $name := include "specmux.fullname" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $names := list $name $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.%s" $inNamespace .Values.tls.clusterDomain) -}}
{{- concat $names .Values.tls.extraNames | uniq | toYaml -}}
{{- end -}}

{{/* The whole configuration file, which everything else is derived from: RBAC grants what it says, not what values say. */}}
{{- define "specmux.config" -}}
{{- $made := dict "listen" (dict "tls_cert_file" "/etc/specmux-tls/tls.crt" "tls_key_file" "/etc/specmux-tls/tls.key") -}}
{{- $elsewhere := or (dig "kubernetes" "kubeconfig" "" .Values.config) (dig "kubernetes" "context" "" .Values.config) -}}
{{- $sources := .Values.apiServiceDiscovery.enabled -}}
{{- /* Without sources the cluster is still the one that is asked who a caller is. */ -}}
{{- if and (or $sources (eq (dig "auth" "mode" "none" .Values.config) "kubernetes")) (not $elsewhere) -}}
{{- $_ := set $made "kubernetes" (dict "in_cluster" true "apiserver" $sources "api_services" $sources "crds" $sources) -}}
{{- end -}}
{{- if .Values.cache.enabled -}}
{{- $_ := set $made "state" (dict "directory" "/var/cache/specmux/state") -}}
{{- end -}}
{{- mustMergeOverwrite $made (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{- define "specmux.authMode" -}}
{{- dig "auth" "mode" "none" (include "specmux.config" . | fromYaml) -}}
{{- end -}}

{{/* Whether the pods have the account's token: on request, or where something uses it. */}}
{{- define "specmux.automount" -}}
{{- $config := include "specmux.config" . | fromYaml -}}
{{- $uses := or (dig "kubernetes" "in_cluster" false $config) .Values.rbac.extraRules (contains "/run/secrets/kubernetes.io/serviceaccount/" ($config | toJson)) -}}
{{- ternary (not (not $uses)) .Values.serviceAccount.automount (eq (toString .Values.serviceAccount.automount) "auto") -}}
{{- end -}}

{{/*
What of a host comes to us. "shared": the rest of it goes elsewhere; then only what is discovery itself does, unless we
pass on resources too. A host of our own has nothing but discovery, so all of it may come.
*/}}
{{- define "specmux.paths" -}}
{{- $proxy := dig "proxy" dict (include "specmux.config" .root | fromYaml) -}}
{{- $proxied := ternary (eq (toString $proxy) "resources") (dig "resources" false (ternary $proxy dict (kindIs "map" $proxy))) (kindIs "string" $proxy) -}}
{{- $resources := ternary "Exact" "Prefix" (and .shared (not $proxied)) -}}
- path: /openapi
  pathType: Prefix
- path: /api
  pathType: {{ $resources }}
- path: /apis
  pathType: {{ $resources }}
- path: /version
  pathType: Exact
{{- end -}}

{{- define "specmux.probe" -}}
{{- $endpoint := dict "path" .path "port" "https" "scheme" "HTTPS" -}}
{{- merge (dict "httpGet" $endpoint) .probe | toYaml -}}
{{- end -}}
