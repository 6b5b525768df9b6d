/** Light, dark, or as the system has it. The choice stays in this browser. */
import { computed, signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'tocsin.theme';

function stored(): Theme {
  const text = localStorage.getItem(KEY);
  return text === 'light' || text === 'dark' ? text : 'auto';
}

export const theme = signal<Theme>(stored());

const system = matchMedia('(prefers-color-scheme: dark)');
const isSystemDark = signal(system.matches);
system.addEventListener('change', ({ matches }) => {
  isSystemDark.value = matches;
});

export const isDark = computed(() => (theme.value === 'auto' ? isSystemDark.value : theme.value === 'dark'));

export function setTheme(next: Theme): void {
  theme.value = next;
  if (next === 'auto') {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, next);
    document.documentElement.dataset.theme = next;
  }
}
