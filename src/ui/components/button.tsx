/** A button, apart from other parts: the frame of the dashboard needs it at once. */
import type { ComponentProps } from 'preact';
import { Icon, type IconName } from './icon';

export interface ButtonProps extends Omit<ComponentProps<'button'>, 'icon' | 'label'> {
  label?: string | undefined;
  icon?: IconName | undefined;
  /** Of the icon, px. */
  size?: number;
}

export const Button = ({ label, icon, size = 14, children, ...attributes }: ButtonProps) => (
  <button type="button" {...attributes}>
    {icon && <Icon name={icon} size={size} />}
    {label}
    {children}
  </button>
);
