package main

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// What the plot shows: measurements in seconds that were made with several numbers of resources.
const (
	hykubeApply   = "write, plan and apply of all: the command"
	planAndApply  = "plan and apply of all"
	providerCalls = "the provider calls of plan and apply alone"
	leafPlan      = "plan of one changed resource"
	hubPlan       = "plan of a changed resource that all others refer to"
	otherApply    = "Terraform or OpenTofu: apply of all"
	otherPlan     = "Terraform or OpenTofu: plan of one changed resource"
)

// plot draws seconds over the number of resources, both with logarithmic axes, as an SVG file.
func (r *results) plot(path string) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "resources", "seconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := false
	for i, what := range []string{otherApply, planAndApply, providerCalls, otherPlan, hubPlan, leafPlan} {
		values := r.find(what)
		var points plotter.XYs
		for _, n := range slices.Sorted(maps.Keys(values)) {
			points = append(points, plotter.XY{X: float64(n), Y: values[n]})
		}
		if len(points) == 0 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("plot %s: %w", what, err)
		}
		drawn = drawn || len(points) > 1
		line.Color, marks.Color, marks.Shape = colours[i], colours[i], draw.CircleGlyph{}
		p.Add(line, marks)
		p.Legend.Add(what, line, marks)
	}
	if !drawn {
		return nil // one number of resources makes no line
	}
	p.Y.Max *= 30 // room for the legend
	return cmp.Or(p.Save(8*vg.Inch, 6*vg.Inch, path))
}

// colours of the lines; Hykube's are dark.
var colours = []color.Color{
	color.RGBA{R: 230, G: 140, B: 60, A: 255}, color.RGBA{R: 20, G: 60, B: 140, A: 255}, color.RGBA{R: 140, G: 140, B: 140, A: 255},
	color.RGBA{R: 240, G: 190, B: 110, A: 255}, color.RGBA{R: 90, G: 50, B: 130, A: 255}, color.RGBA{R: 20, G: 110, B: 90, A: 255},
}
