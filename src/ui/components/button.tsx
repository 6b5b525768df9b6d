/** A button, apart from other parts: the frame of the dashboard needs it at once. */
import type { ComponentProps } from 'preact';
import { Icon, type IconName } from './icon';

export interface ButtonProps extends Omit<ComponentProps<'button'>, 'icon' | 'label'> {
  label?: string | undefined;
  icon?: IconName | undefined;
}

export function Button({ label, icon, children, ...attributes }: ButtonProps) {
  return (
    <button type="button" {...attributes}>
      {icon && <Icon name={icon} size={14} />}
      {label}
      {children}
    </button>
  );
}
