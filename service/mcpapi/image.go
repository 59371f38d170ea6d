package mcpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/image/draw"

	"glasshouse/sandbox"
)

// Bounds of the images in an answer. A model pays for pixels: 1024 by 768 are about 1000 tokens.
const (
	maxImages     = 3
	maxImageSide  = 1024      // pixels
	maxImageBytes = 200 << 10 // of a PNG
	minImageSide  = 128       // pixels; an image that is too large even so is left out
	// maxPixels and maxDecodedSide bound an image that is decoded; larger ones are left out. A pixel takes up to
	// 8 bytes, and the scaling 32 for each pixel of an image of the small width and the large height: 256 MiB in
	// all. The file of such an image can have some kilobytes.
	maxPixels      = 16 << 20
	maxDecodedSide = 1 << 16

	maxImageFileBytes = 32 << 20
)

// imagesOf returns the first images of an execution, made smaller where they are too large.
func (s *Server) imagesOf(ctx context.Context, caller sandbox.Key, outputs []sandbox.Output) []mcp.Content {
	var out []mcp.Content
	for _, o := range outputs {
		if len(out) == maxImages {
			break
		}
		if data := s.outputPart(ctx, caller, o, "image/png"); data != nil {
			if data = s.fitPNG(caller, data); data != nil {
				out = append(out, &mcp.ImageContent{Data: data, MIMEType: "image/png"})
			}
		}
	}
	return out
}

// outputPart returns the bytes of one part of a rich output, or nil if it has no such part.
func (s *Server) outputPart(ctx context.Context, caller sandbox.Key, o sandbox.Output, kind string) []byte {
	var text string
	if part := o.Data[kind]; part != nil && json.Unmarshal(part, &text) == nil {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return data
		}
	}
	a, ok := o.Reference(kind)
	if !ok {
		return nil
	}
	f, _, err := s.records.OpenArtifact(ctx, caller, a.ID)
	if err != nil {
		return nil // deleted; the text has its summary
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImageFileBytes))
	if err != nil {
		return nil
	}
	return data
}

// fitPNG returns a PNG within the bounds of an answer, or nil if that cannot be. One image is decoded at a time,
// in turn by user.
func (s *Server) fitPNG(caller sandbox.Key, data []byte) (fitting []byte) {
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || max(config.Width, config.Height) > maxDecodedSide || config.Width*config.Height > maxPixels {
		return nil
	}
	if max(config.Width, config.Height) <= maxImageSide && len(data) <= maxImageBytes {
		return data
	}
	size := len(data) + config.Width*config.Height
	s.images.Compute(caller.User, size, func() { fitting = shrinkPNG(data, config) })
	return fitting
}

func shrinkPNG(data []byte, config image.Config) []byte {
	source, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	for side := min(maxImageSide, max(config.Width, config.Height)); side >= minImageSide; side = side * 3 / 4 {
		scale := float64(side) / float64(max(config.Width, config.Height))
		small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(config.Width)*scale)),
			max(1, int(float64(config.Height)*scale))))
		draw.CatmullRom.Scale(small, small.Bounds(), source, source.Bounds(), draw.Src, nil)
		var b bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if encoder.Encode(&b, small) == nil && b.Len() <= maxImageBytes {
			return b.Bytes()
		}
	}
	return nil
}
