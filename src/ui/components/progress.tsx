export function Bar({ value, label }: { value: number; label: string }) {
  return <progress value={Math.max(0, Math.min(1, value))} aria-label={label} />;
}
