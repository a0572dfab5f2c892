"""The stand-in for pulumi-kubernetes 4.34: any kind by server-side apply, awaited; Helm releases; ConfigGroups.

What it does where there is a choice was read in the real provider's source (github.com/pulumi/pulumi-kubernetes) and in
its SDK's documentation. Left out, because the program uses none of it: Patch resources, client-side apply, rendering to
YAML, `generateName`, the other components, invokes.
"""
